// Threads that share a monitor, a lock with a condition, a map and a pool, and allocate meanwhile.

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;

public class Threads {
    static long counted;
    static final ReentrantLock lock = new ReentrantLock();
    static final Condition changed = lock.newCondition();
    static int turn;

    static synchronized void count(long value) {
        counted += value;
    }

    // Four threads in turn, each of which waits for its own.
    static void takeTurns(int me, int rounds) throws InterruptedException {
        for (int round = 0; round < rounds; round++) {
            lock.lock();
            try {
                while (turn % 4 != me) {
                    changed.await();
                }
                turn++;
                changed.signalAll();
            } finally {
                lock.unlock();
            }
        }
    }

    public static void main(String[] arguments) throws Exception {
        int rounds = Integer.parseInt(arguments[0]);
        var map = new ConcurrentHashMap<Integer, Integer>();
        try (var closed = new Closed()) {
            List<Future<?>> results = new ArrayList<>();
            for (int nth = 0; nth < 4; nth++) {
                int me = nth;
                results.add(closed.pool.submit(() -> {
                    takeTurns(me, rounds / 50);
                    var kept = new ArrayList<int[]>();
                    for (int round = 0; round < rounds; round++) {
                        count(round % 7);
                        map.merge(round % 101, 1, Integer::sum);
                        kept.add(new int[64]);
                        if (kept.size() > 1000) {
                            kept.clear();
                        }
                    }
                    return null;
                }));
            }
            for (var result : results) {
                result.get();
            }
        }
        long sum = map.entrySet().stream().mapToLong(entry -> (long) entry.getKey() * entry.getValue()).sum();
        System.out.println(counted + " " + sum + " " + turn);
    }

    // An executor can be closed since Java 19 only.
    static class Closed implements AutoCloseable {
        final java.util.concurrent.ExecutorService pool = Executors.newFixedThreadPool(4);

        public void close() {
            pool.shutdown();
        }
    }
}
