import com.sun.net.httpserver.HttpServer;
import com.sun.net.httpserver.HttpsServer;
import com.sun.net.httpserver.spi.HttpServerProvider;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;

/**
 * The HTTP servers of the JVM, for a server that has no option to listen on 127.0.0.1 only: they do, whatever address
 * they are asked for, and the JVM ends when its standard input does, that is with the process that started it.
 *
 * <p>Built with: javac --release 8 LocalServers.java
 */
public class LocalServers extends HttpServerProvider {
    private final HttpServerProvider standard;

    public LocalServers() throws ReflectiveOperationException {
        Class<?> provider = Class.forName("sun.net.httpserver.DefaultHttpServerProvider");
        standard = (HttpServerProvider) provider.getDeclaredConstructor().newInstance();
        Thread watch = new Thread(LocalServers::endWithStandardInput);
        watch.setDaemon(true);
        watch.start();
    }

    private static void endWithStandardInput() {
        try {
            while (System.in.read() >= 0) {}
        } catch (IOException end) {
            // closed: as good as its end
        }
        Runtime.getRuntime().halt(0);
    }

    private static InetSocketAddress local(InetSocketAddress address) throws IOException {
        return new InetSocketAddress(InetAddress.getByName("127.0.0.1"), address.getPort());
    }

    @Override
    public HttpServer createHttpServer(InetSocketAddress address, int backlog) throws IOException {
        return standard.createHttpServer(local(address), backlog);
    }

    @Override
    public HttpsServer createHttpsServer(InetSocketAddress address, int backlog) throws IOException {
        return standard.createHttpsServer(local(address), backlog);
    }
}
