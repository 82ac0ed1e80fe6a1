import { createServer as createPlainServer } from "node:http";
import { createServer } from "node:https";
import { describe, expect, test } from "vitest";
import { listen, openProxy, openWitness } from "../support/servers.ts";
import { expectFault, openPair, openTestService, openTestSimulator, SIGNAL } from "../support/service.ts";
import { NO_PROXY } from "../support/settings.ts";
import { CA, CLIENT, SERVER } from "../support/tls.ts";

const tls = SERVER;

describe("TLS", () => {
  test("refuses a certificate of an unknown authority, and accepts it once the authority is trusted", async () => {
    const simulator = await openTestSimulator({}, { tls });
    const doubtful = openTestService(simulator);
    await expectFault(doubtful.apiVersions(SIGNAL), "TLS_REFUSED", "wait");
    const trusting = openTestService(simulator, { ca: CA });
    expect(await trusting.apiVersions(SIGNAL)).toHaveLength(1);
  });

  test("refuses a certificate for another host", async () => {
    const simulator = await openTestSimulator({}, { tls, host: "127.0.0.2" });
    await expectFault(openTestService(simulator, { ca: CA }).apiVersions(SIGNAL), "TLS_REFUSED");
  });

  test("sends a client certificate if the service wants one", async () => {
    const body = JSON.stringify({ apiVersions: { uiApiVersions: [{ major: 1, minor: 20 }] } });
    const server = createServer(
      { ...tls, ca: CA, requestCert: true, rejectUnauthorized: true },
      (_request, response) => void response.end(body),
    );
    const baseUrl = new URL((await listen(server)).replace("http:", "https:"));
    const simulator = await openTestSimulator();
    await expect(openTestService(simulator, { baseUrl, ca: CA }).apiVersions(SIGNAL)).rejects.toThrow();
    const service = openTestService(simulator, { baseUrl, ca: CA, ...CLIENT });
    expect(await service.apiVersions(SIGNAL)).toEqual([{ major: 1, minor: 20 }]);
  });

  test("reports a service that does not speak TLS", async () => {
    const { simulator } = await openPair();
    const baseUrl = new URL(simulator.url.replace("http:", "https:"));
    await expectFault(openTestService(simulator, { baseUrl }).apiVersions(SIGNAL), "TLS_REFUSED");
  });
});

describe("a proxy", () => {
  test("opens a tunnel to an https service, with TLS inside", async () => {
    const proxy = await openProxy();
    const simulator = await openTestSimulator({}, { tls });
    const service = openTestService(simulator, { ca: CA, proxy: { ...NO_PROXY, https: proxy.url } });
    expect(await service.apiVersions(SIGNAL)).toHaveLength(1);
    expect(proxy.asked).toEqual([`CONNECT ${new URL(simulator.url).host}`]);
    const doubtful = openTestService(simulator, { proxy: { ...NO_PROXY, https: proxy.url } });
    await expectFault(doubtful.apiVersions(SIGNAL), "TLS_REFUSED");
  });

  test("forwards requests to a plain service", async () => {
    const proxy = await openProxy();
    const { simulator, access } = await openPair();
    const service = openTestService(simulator, { proxy: { ...NO_PROXY, http: proxy.url } });
    expect(await service.files(access, SIGNAL)).toHaveLength(2);
    expect(proxy.asked).toHaveLength(1);
  });

  test("is not used for excepted hosts", async () => {
    const proxy = await openProxy();
    const { simulator, access } = await openPair();
    for (const except of ["127.0.0.1", "other.example, 127.0.0.1", "*"]) {
      const service = openTestService(simulator, { proxy: { http: proxy.url, https: proxy.url, except } });
      expect(await service.files(access, SIGNAL)).toHaveLength(2);
    }
    expect(proxy.asked).toEqual([]);
  });

  test("may demand a user and password, and a refusal is reported", async () => {
    const proxy = await openProxy("user:pass");
    const simulator = await openTestSimulator({}, { tls });
    const named = proxy.url.replace("http://", "http://user:pass@");
    const service = openTestService(simulator, { ca: CA, proxy: { ...NO_PROXY, https: named } });
    expect(await service.apiVersions(SIGNAL)).toHaveLength(1);
    const nameless = openTestService(simulator, { ca: CA, proxy: { ...NO_PROXY, https: proxy.url } });
    await expectFault(nameless.apiVersions(SIGNAL), "PROXY_REFUSED", "wait");
  });

  test("that is down is reported differently from a service that is down", async () => {
    const { simulator } = await openPair();
    const witness = await openWitness();
    const service = openTestService(simulator, {
      baseUrl: new URL(witness.url),
      proxy: { ...NO_PROXY, http: "http://127.0.0.1:1" },
    });
    await expectFault(service.apiVersions(SIGNAL), "SERVICE_UNREACHABLE");
    expect(witness.seen).toEqual([]);
  });
});

test("connections are reused, and never exceed the limit", async () => {
  const server = createPlainServer((_request, response) => void response.end('{"data":[]}'));
  let opened = 0;
  server.on("connection", () => opened++);
  const { simulator, access } = await openPair();
  const service = openTestService(simulator, {
    baseUrl: new URL(await listen(server)),
    maxRequests: () => 3,
  });
  await Promise.all(Array.from({ length: 20 }, () => service.files(access, SIGNAL)));
  for (let round = 0; round < 20; round++) await service.files(access, SIGNAL);
  // One of the three places is for other transfers.
  expect(opened).toBe(2);
});
