package semel.clients;

import static semel.clients.Checks.equal;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;
import java.util.regex.Pattern;
import org.apache.kafka.common.utils.internals.Exit;

/** Kafka's command line tools, run in this process. */
final class Tools {
    private Tools() {
    }

    interface Main {
        void run(String... arguments) throws Exception;
    }

    /** In place of the end of the process. */
    private static final class Exited extends RuntimeException {
    }

    /** What a tool prints, without the lines that are empty; it must end with 0. */
    static List<String> run(Main tool, Broker broker, String... arguments) throws Exception {
        String[] all = new String[arguments.length + 2];
        all[0] = "--bootstrap-server";
        all[1] = broker.bootstrap();
        System.arraycopy(arguments, 0, all, 2, arguments.length);
        ByteArrayOutputStream printed = new ByteArrayOutputStream();
        PrintStream out = System.out;
        PrintStream err = System.err;
        System.setOut(new PrintStream(printed, true));
        System.setErr(System.out);
        // Some tools take what is thrown in place of their end for a failure, and end once more.
        AtomicReference<Integer> first = new AtomicReference<>();
        Exit.setExitProcedure((status, message) -> {
            first.compareAndSet(null, status);
            throw new Exited();
        });
        try {
            tool.run(all);
        } catch (Exited exited) {
            equal(0, first.get(), "exit status; it printed " + printed);
        } finally {
            Exit.resetExitProcedure();
            System.setOut(out);
            System.setErr(err);
        }
        return printed.toString().lines().filter(line -> !line.isBlank()).toList();
    }

    static void hasLine(List<String> lines, String... words) {
        Pattern pattern = Pattern.compile(String.join("\\s+", Arrays.stream(words).map(Pattern::quote).toList()));
        if (lines.stream().noneMatch(line -> pattern.matcher(line).find())) {
            throw new AssertionError("no line with " + List.of(words) + " in " + lines);
        }
    }
}
