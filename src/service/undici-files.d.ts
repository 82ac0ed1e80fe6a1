/** Files of undici, which have no types of their own. */
declare module "undici/lib/api/api-connect.js" {
  import type { Dispatcher } from "undici";

  const connect: Dispatcher["connect"];
  export = connect;
}
declare module "undici/lib/dispatcher/dispatcher.js" {
  import { Dispatcher } from "undici";
  export = Dispatcher;
}
declare module "undici/lib/dispatcher/env-http-proxy-agent.js" {
  import { EnvHttpProxyAgent } from "undici";
  export = EnvHttpProxyAgent;
}
declare module "undici/lib/dispatcher/pool.js" {
  import { Pool } from "undici";
  export = Pool;
}
