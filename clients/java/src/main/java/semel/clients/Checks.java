package semel.clients;

import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.ExecutionException;
import java.util.function.BooleanSupplier;

/** Runs named checks, prints one line for each, and remembers whether one failed. */
final class Checks {
    /** Whether the broker is Apache Kafka, whose own behaviour some expectations go beyond. */
    static final boolean KAFKA = "kafka".equals(System.getenv("PEER"));

    private boolean failed;

    interface Body {
        void run() throws Exception;
    }

    void check(String name, Body body) {
        long start = System.nanoTime();
        try {
            body.run();
            System.out.printf("ok %s (%.1f s)%n", name, (System.nanoTime() - start) / 1e9);
        } catch (Throwable failure) {
            failed = true;
            System.out.printf("FAILED %s: %s%n", name, failure);
            failure.printStackTrace(System.out);
        }
    }

    /** A check that Apache Kafka fails, for the reason given: run on Semel only. */
    void stricter(String name, String reason, Body body) {
        if (KAFKA) {
            skip(name, "stricter than Kafka: " + reason);
        } else {
            check(name, body);
        }
    }

    static void skip(String name, String reason) {
        System.out.printf("skipped %s: %s%n", name, reason);
    }

    int exitStatus() {
        return failed ? 1 : 0;
    }

    static void equal(Object expected, Object seen, String what) {
        if (!Objects.equals(expected, seen)) {
            throw new AssertionError(what + ": expected " + shorten(expected) + ", saw " + shorten(seen));
        }
    }

    /** The body must throw exactly this class (not a subclass); futures are unwrapped. */
    static void raises(Class<? extends Throwable> expected, Body body, String what) {
        Throwable seen = null;
        try {
            body.run();
        } catch (ExecutionException wrapped) {
            seen = wrapped.getCause();
        } catch (Exception plain) {
            seen = plain;
        }
        if (seen == null || seen.getClass() != expected) {
            throw new AssertionError(what + ": expected " + expected.getSimpleName() + ", saw " + seen, seen);
        }
    }

    /** Asks again until the condition holds; for what the broker does in its own time. */
    static void await(Duration limit, BooleanSupplier condition, String what) throws InterruptedException {
        long end = System.nanoTime() + limit.toNanos();
        while (!condition.getAsBoolean()) {
            if (System.nanoTime() > end) {
                throw new AssertionError(what + ": not within " + limit.toSeconds() + " s");
            }
            Thread.sleep(50);
        }
    }

    /** What Kafka does some time after its answer, and Semel before it: awaited there, asserted here. */
    static void eventually(BooleanSupplier condition, String what) throws InterruptedException {
        if (KAFKA) {
            await(Duration.ofSeconds(10), condition, what);
        } else {
            equal(true, condition.getAsBoolean(), what + " when the answer was here");
        }
    }

    private static String shorten(Object value) {
        String text = String.valueOf(value);
        return text.length() < 300 ? text : text.substring(0, 300) + "...";
    }
}
