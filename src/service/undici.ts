/**
 * What we need of undici, by its files: the whole of it brings caches, mocks and sockets of the web, for more than twice
 * the time at every start and 12 MiB of memory.
 */
import connect from "undici/lib/api/api-connect.js";
import Dispatcher from "undici/lib/dispatcher/dispatcher.js";
import EnvHttpProxyAgent from "undici/lib/dispatcher/env-http-proxy-agent.js";
import Pool from "undici/lib/dispatcher/pool.js";

// As the whole of it does, for proxies that are asked for a tunnel.
Dispatcher.prototype.connect = connect;

export { EnvHttpProxyAgent, Pool };
