import java.lang.management.ManagementFactory;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicLong;

/** Says what a JVM makes of its CPU limit, once a second: see measure. */
public class Processors {
    public static void main(String[] words) throws Exception {
        var system = (com.sun.management.OperatingSystemMXBean)
            ManagementFactory.getOperatingSystemMXBean();
        // As frameworks do it: a pool of as many threads as there are processors at the start.
        int threads = Runtime.getRuntime().availableProcessors();
        var rounds = new AtomicLong();
        var pool = Executors.newFixedThreadPool(threads, task -> {
            var thread = new Thread(task);
            thread.setDaemon(true);
            return thread;
        });
        for (int i = 0; i < 64; ++i) {
            pool.submit(() -> {
                while (true) {
                    for (int round = 0; round < 100_000; ++round) {
                        Thread.onSpinWait();
                    }
                    rounds.incrementAndGet();
                }
            });
        }
        for (int second = 0; second < Integer.parseInt(words[0]); ++second) {
            Thread.sleep(1000);
            System.out.printf("%d %d %s %d %d%n", Runtime.getRuntime().availableProcessors(),
                threads,
                ManagementFactory.getGarbageCollectorMXBeans().get(0).getName().replace(' ', '_'),
                system.getProcessCpuTime(), rounds.get());
        }
        System.exit(0);
    }
}
