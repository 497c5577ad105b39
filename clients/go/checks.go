package main

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"time"
)

// isKafka tells whether the broker is Apache Kafka, whose own behaviour some expectations go beyond.
var isKafka = os.Getenv("PEER") == "kafka"

var failed bool

// check runs one named check and prints its line; fail ends the check, not the suite.
func check(name string, body func(ctx context.Context)) {
	start := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), 40*time.Second)
	defer cancel()
	defer func() {
		if failure := recover(); failure != nil {
			failed = true
			fmt.Printf("FAILED %s: %v\n", name, failure)
			return
		}
		fmt.Printf("ok %s (%.1f s)\n", name, time.Since(start).Seconds())
	}()
	body(ctx)
}

// stricter is a check that Apache Kafka fails, for the reason given: run on Semel only.
func stricter(name, reason string, body func(ctx context.Context)) {
	if isKafka {
		fmt.Printf("skipped %s: stricter than Kafka: %s\n", name, reason)
		return
	}
	check(name, body)
}

func fail(format string, values ...any) {
	text := fmt.Sprintf(format, values...)
	panic(text[:min(len(text), 600)])
}

func must(err error, what string) {
	if err != nil {
		fail("%s: %v", what, err)
	}
}

func equal(expected, seen any, what string) {
	if !reflect.DeepEqual(expected, seen) {
		fail("%s: expected %v, saw %v", what, expected, seen)
	}
}

// raises demands exactly this error, not one that wraps it.
func raises(expected, seen error, what string) {
	if seen != expected {
		fail("%s: expected %v, saw %v", what, expected, seen)
	}
}

// await asks again until the condition holds; for what the broker does in its own time.
func await(limit time.Duration, condition func() bool, what string) {
	for end := time.Now().Add(limit); !condition(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			fail("%s: not within %v", what, limit)
		}
	}
}

// eventually is for what Kafka does some time after its answer, and Semel before it: awaited there, asserted here.
func eventually(condition func() bool, what string) {
	if isKafka {
		await(10*time.Second, condition, what)
	} else {
		equal(true, condition(), what+" when the answer was here")
	}
}
