/** A client in a thread with little memory: posts the number of entries that it read, or the fault's code. */
import { parentPort, workerData } from "node:worker_threads";
import { asFault } from "../../src/base/faults.ts";
import { Secret } from "../../src/base/secret.ts";
import { openService } from "../../src/service/service.ts";

export type BoundedAsk = "page" | "files" | "rules" | "verification" | "status";

const { url, ask } = workerData as { readonly url: string; readonly ask: BoundedAsk };
const { signal } = new AbortController();
const service = openService({
  baseUrl: new URL(url),
  clientId: new Secret("client"),
  acceptLanguage: "en",
  userAgent: "inlet/test",
  proxy: { http: "", https: "", except: "" },
  ca: undefined,
  cert: undefined,
  key: undefined,
  timeoutMs: 60_000,
  maxRequests: () => 16,
  idListForm: "repeat",
});
const access = { transferId: "t", password: new Secret("password") };
const address = { email: "me@here.example", token: new Secret("token") };
const asked = {
  page: async () => (await service.pollReceived(address, {}, signal)).entries.length,
  files: async () => (await service.files(access, signal)).length,
  rules: async () => (await service.passwordRules(signal)).length,
  verification: async () => (await service.verification(address.email, undefined, signal)).methods.length,
  status: async () => (await service.apiVersions(signal))?.length,
};
parentPort?.postMessage(await asked[ask]().catch((error: unknown) => asFault(error).code));
await service.close();
