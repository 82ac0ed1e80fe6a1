/** The connections to a service or a webhook: their pool, certificates and proxy. */

import { type Dispatcher, EnvHttpProxyAgent, Pool } from "undici";
import { joinedConnector } from "./joined-socket.ts";
import { authoritiesWith } from "./trust.ts";

/** The proxy for each scheme of the service's address, and the hosts to reach without one; empty for none. */
interface ProxyRoutes {
  readonly http: string;
  readonly https: string;
  readonly except: string;
}

export interface ConnectionOptions {
  readonly proxy: ProxyRoutes;
  /** PEM text: certificate authorities to trust in addition to the usual ones. */
  readonly ca: string | undefined;
  /** PEM texts for mutual TLS. */
  readonly cert: string | undefined;
  readonly key: string | undefined;
  /** How long to wait for a connection, for the head of an answer, and between two chunks of its body. */
  readonly timeoutMs: number;
}

/**
 * HTTP/1.1 only: one body per connection keeps downloads independent, so that a stalled one never delays the others. All
 * requests go to the origin of `baseUrl`.
 */
export function openConnections(options: ConnectionOptions, baseUrl: URL): Dispatcher {
  const tls = {
    ...(baseUrl.protocol === "https:" ? authoritiesWith(options.ca) : {}),
    ...(options.cert === undefined ? {} : { cert: options.cert }),
    ...(options.key === undefined ? {} : { key: options.key }),
  };
  const pool = {
    allowH2: false,
    headersTimeout: options.timeoutMs,
    bodyTimeout: options.timeoutMs,
    connect: joinedConnector({ ...tls, timeout: options.timeoutMs, allowH2: false }),
  };
  const { http, https, except } = options.proxy;
  if (http === "" && https === "") return new Pool(baseUrl.origin, pool);
  return new EnvHttpProxyAgent({
    ...pool,
    // Passed even if empty: otherwise undici reads the environment.
    httpProxy: http,
    httpsProxy: https,
    noProxy: except,
    requestTls: { ...tls, timeout: options.timeoutMs },
    proxyTls: { ...(tls.ca === undefined ? {} : { ca: tls.ca }), timeout: options.timeoutMs },
  });
}
