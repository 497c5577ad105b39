package semel.clients;

import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.net.Socket;
import java.nio.charset.StandardCharsets;

/** Spends the epochs of a transactional id, as tens of thousands of restarts of its producer would in years. */
final class Epochs {
    /** The last epoch that a producer gets. */
    static final int LAST = 32_766;

    private static final short INIT_PRODUCER_ID = 22;
    private static final int IN_FLIGHT = 90;
    private static final int NONE = 0;
    private static final int CONCURRENT_TRANSACTIONS = 51;

    private Epochs() {}

    /** Initialises the id, many requests in flight, until its epoch is at least this; gives the producer id. */
    static long raise(String bootstrap, String id, int epoch) throws Exception {
        int colon = bootstrap.lastIndexOf(':');
        int port = Integer.parseInt(bootstrap.substring(colon + 1));
        try (Socket socket = new Socket(bootstrap.substring(0, colon), port)) {
            DataOutputStream out = new DataOutputStream(new BufferedOutputStream(socket.getOutputStream()));
            DataInputStream in = new DataInputStream(new BufferedInputStream(socket.getInputStream()));
            long producer = -1;
            for (int reached = -1; reached < epoch || producer < 0; ) {
                int count = Math.min(IN_FLIGHT, Math.max(1, epoch - reached));
                for (int i = 0; i < count; i++) {
                    write(out, id);
                }
                out.flush();
                for (int i = 0; i < count; i++) {
                    in.skipNBytes(4 + 4 + 4);
                    int code = in.readShort();
                    long answered = in.readLong();
                    int given = in.readShort();
                    if (code == NONE) {
                        producer = answered;
                        reached = given;
                    } else if (code != CONCURRENT_TRANSACTIONS) {
                        throw new AssertionError("InitProducerId: error " + code);
                    }
                }
            }
            return producer;
        }
    }

    /** Version 1, which has no pair and no tagged fields. */
    private static void write(DataOutputStream out, String id) throws Exception {
        byte[] name = id.getBytes(StandardCharsets.UTF_8);
        out.writeInt(2 + 2 + 4 + 2 + 2 + name.length + 4);
        out.writeShort(INIT_PRODUCER_ID);
        out.writeShort(1);
        out.writeInt(0);
        out.writeShort(-1);
        out.writeShort(name.length);
        out.write(name);
        out.writeInt(60_000);
    }
}
