package semel.clients;

import java.util.concurrent.atomic.AtomicInteger;
import java.util.logging.Handler;
import java.util.logging.Level;
import java.util.logging.LogRecord;
import java.util.logging.Logger;

/** Counts the requests of one API that the client puts on the wire, by the line it logs for each. */
final class RequestCounter extends Handler implements AutoCloseable {
    private final Logger logger = Logger.getLogger("org.apache.kafka.clients.NetworkClient");
    private final AtomicInteger seen = new AtomicInteger();
    private final String mark;

    RequestCounter(String api) {
        mark = "Sending " + api + " request";
        logger.setUseParentHandlers(false);
        logger.setLevel(Level.FINE);
        logger.addHandler(this);
    }

    int count() {
        return seen.get();
    }

    @Override
    public void publish(LogRecord record) {
        if (record.getMessage().contains(mark)) {
            seen.incrementAndGet();
        }
    }

    @Override
    public void flush() {}

    @Override
    public void close() {
        logger.removeHandler(this);
        logger.setLevel(Level.OFF);
    }
}
