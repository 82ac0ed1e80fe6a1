/** The control interface: commands to the simulator over HTTP, beside the simulated service. */
import type { IncomingMessage } from "node:http";
import { controlHelp } from "./control-help.ts";
import { ScenarioError, ServiceError } from "./errors.ts";
import type { HttpRequest } from "./journal.ts";
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
    const found = endpoints
      .filter((endpoint) => endpoint.pattern.test({ pathname: url.pathname }))
      .map((endpoint) => ({ ...endpoint, id: idIn(endpoint.pattern, url.pathname) }));
    const endpoint = found.find((candidate) => candidate.method === method);
    if (endpoint !== undefined) return answer(endpoint.act, endpoint.id, message);
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
  const shown = (trackingId: string): Reply => jsonReply(200, findTransfer(simulator, trackingId));
  return [
    endpoint("GET", "/control", () =>
      textReply(200, "text/plain; charset=utf-8", controlHelp(simulator.url)),
    ),
    endpoint("GET", "/control/transfers", () => jsonReply(200, simulator.transfers())),
    endpoint("POST", "/control/transfers", async (_id, body) =>
      jsonReply(201, simulator.addTransfer(parseTransferPlan(await body()))),
    ),
    endpoint("POST", "/control/transfers/:id/revoke", (id) => {
      simulator.revoke(findTransfer(simulator, id).trackingId);
      return shown(id);
    }),
    endpoint("POST", "/control/transfers/:id/remove", (id) => {
      simulator.remove(findTransfer(simulator, id).trackingId);
      return shown(id);
    }),
    endpoint("POST", "/control/transfers/:id/replace-address", async (id, body) => {
      const { old, new: replacement } = parseAs(replaceBody, await body());
      simulator.replaceAddress(findTransfer(simulator, id).trackingId, old, replacement);
      return shown(id);
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
