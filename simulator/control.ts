/** The control interface: commands to the simulator over HTTP, beside the simulated service. */
import type { IncomingMessage } from "node:http";
import { ScenarioError, ServiceError } from "./errors.ts";
import type { HttpRequest } from "./journal.ts";
import { SCENARIO_REFERENCE } from "./reference.ts";
import { formatDate, jsonReply, type Reply, textReply } from "./reply.ts";
import { readJson } from "./requests.ts";
import { parseAs, parseFaultPlan, parseTransferPlan, secondsFromNow, shape, text } from "./scenario.ts";
import type { SimulatedTransfer, Simulator } from "./simulator.ts";

const MAX_BODY_BYTES = 16 * 1024 * 1024;

const advanceBody = shape({ seconds: secondsFromNow });
const replaceBody = shape({ old: text, new: text });

export type Control = (request: HttpRequest, message: IncomingMessage) => Promise<Reply> | undefined;

/** Answers requests under `/control`; `undefined` for all others. */
export function createControl(simulator: Simulator): Control {
  const endpoints = listEndpoints(simulator);
  return ({ method, url }, message) => {
    if (url.pathname !== "/control" && !url.pathname.startsWith("/control/")) return undefined;
    const found = endpoints.filter(({ pattern }) => pattern.test({ pathname: url.pathname }));
    const endpoint = found.find((candidate) => candidate.method === method);
    if (endpoint !== undefined) return answer(endpoint.act, idIn(endpoint.pattern, url.pathname), message);
    if (found.length === 0) return Promise.resolve(jsonReply(404, { error: "see GET /control" }));
    const allow = found.map((candidate) => candidate.method).join(", ");
    return Promise.resolve(jsonReply(405, { error: `only ${allow}` }, { Allow: allow }));
  };
}

/** `id` is the tracking-id or fault id in the path, if there is one. */
type Act = (id: string, body: () => Promise<unknown>) => Reply | Promise<Reply>;

interface Endpoint {
  readonly method: "GET" | "POST" | "DELETE";
  readonly pattern: URLPattern;
  readonly act: Act;
}

function listEndpoints(simulator: Simulator): readonly Endpoint[] {
  /** Throws `NotFound` for an unknown transfer. */
  const change = (trackingId: string, act: (trackingId: string) => void): Reply => {
    findTransfer(simulator, trackingId);
    act(trackingId);
    return jsonReply(200, findTransfer(simulator, trackingId));
  };
  return [
    endpoint("GET", "/control", () =>
      textReply(200, "text/plain; charset=utf-8", HELP.replaceAll("BASE", simulator.url)),
    ),
    endpoint("GET", "/control/transfers", () => jsonReply(200, simulator.transfers())),
    endpoint("POST", "/control/transfers", async (_id, body) =>
      jsonReply(201, simulator.addTransfer(parseTransferPlan(await body()))),
    ),
    endpoint("POST", "/control/transfers/:id/revoke", (id) => change(id, simulator.revoke)),
    endpoint("POST", "/control/transfers/:id/remove", (id) => change(id, simulator.remove)),
    endpoint("POST", "/control/transfers/:id/replace-address", async (id, body) => {
      const { old, new: replacement } = parseAs(replaceBody, await body());
      return change(id, () => simulator.replaceAddress(id, old, replacement));
    }),
    endpoint("GET", "/control/faults", () => jsonReply(200, simulator.faults())),
    endpoint("POST", "/control/faults", async (_id, body) =>
      jsonReply(201, { id: simulator.addFault(parseFaultPlan(await body())) }),
    ),
    endpoint("DELETE", "/control/faults", () => {
      simulator.clearFaults();
      return jsonReply(200, []);
    }),
    endpoint("DELETE", "/control/faults/:id", (id) => {
      if (!simulator.removeFault(id)) return jsonReply(404, { error: `there is no fault ${id}` });
      return jsonReply(200, simulator.faults());
    }),
    endpoint("POST", "/control/advance", async (_id, body) => {
      simulator.advance(parseAs(advanceBody, await body()).seconds);
      return jsonReply(200, { now: formatDate(simulator.now()) });
    }),
    endpoint("GET", "/control/requests", () =>
      jsonReply(200, { totals: simulator.totals(), requests: simulator.requests() }),
    ),
    endpoint("GET", "/control/mails", () =>
      jsonReply(
        200,
        simulator
          .mails()
          .map(({ address, code, sentAtMs }) => ({ address, code, sent: formatDate(sentAtMs) })),
      ),
    ),
  ];
}

function endpoint(method: Endpoint["method"], pathname: string, act: Act): Endpoint {
  return { method, pattern: new URLPattern({ pathname }), act };
}

function idIn(pattern: URLPattern, pathname: string): string {
  const encoded = pattern.exec({ pathname })?.pathname.groups["id"] ?? "";
  try {
    return decodeURIComponent(encoded);
  } catch {
    return encoded;
  }
}

class NotFound extends Error {}

function findTransfer(simulator: Simulator, trackingId: string): SimulatedTransfer {
  const found = simulator.transfers().find((transfer) => transfer.trackingId === trackingId);
  if (found === undefined) throw new NotFound(`there is no transfer ${trackingId}`);
  return found;
}

async function answer(act: Act, id: string, message: IncomingMessage): Promise<Reply> {
  try {
    return await act(id, () => readJson(message, MAX_BODY_BYTES));
  } catch (error) {
    if (error instanceof ScenarioError) return jsonReply(400, { error: error.message });
    if (error instanceof NotFound) return jsonReply(404, { error: error.message });
    if (error instanceof ServiceError)
      return jsonReply(error.status, { error: error.message }, error.headers);
    throw error;
  }
}

/** The answer of `GET /control`: every call, with an example. */
const HELP = `The control interface of a simulated transfer service.
Bodies and answers are JSON. A wrong body is answered with 400 and {"error": "<key>: <problem>"}.

GET /control/transfers                                   lists transfers: ids, password, refused passwords
  curl BASE/control/transfers

POST /control/transfers                                  sends a transfer
  curl BASE/control/transfers -d '{"from": "anna@supplier.example", "to": ["orders@example.com"],
    "files": [{"name": "hello.txt", "text": "Hello"}, {"name": "big.bin", "generate": {"bytes": 1000000}}]}'

POST /control/transfers/<trackingId>/revoke              revokes it, as the sender
  curl -X POST BASE/control/transfers/20240524-192513-3n2yqVIW/revoke

POST /control/transfers/<trackingId>/remove              deletes it, as the administrator
  curl -X POST BASE/control/transfers/20240524-192513-3n2yqVIW/remove

POST /control/transfers/<trackingId>/replace-address     replaces the address of a deleted user
  curl BASE/control/transfers/20240524-192513-3n2yqVIW/replace-address \\
    -d '{"old": "orders@example.com", "new": "deleted-1@proxy.invalid"}'

GET /control/faults                                      lists faults, and how often each has struck
  curl BASE/control/faults

POST /control/faults                                     adds a fault
  curl BASE/control/faults -d '{"on": "file", "does": {"kind": "reset", "afterBytes": 1000}}'
  curl BASE/control/faults -d '{"on": "received", "times": "always", "does": {"kind": "error", "status": 503}}'

DELETE /control/faults                                   removes all faults
  curl -X DELETE BASE/control/faults

DELETE /control/faults/<id>                              removes one fault
  curl -X DELETE BASE/control/faults/fault-1

POST /control/advance                                    advances the service's clock
  curl BASE/control/advance -d '{"seconds": 86400}'

GET /control/requests                                    lists the requests to the service, without secrets
  curl BASE/control/requests

GET /control/mails                                       lists the mailed verification codes
  curl BASE/control/mails

${SCENARIO_REFERENCE}`;
