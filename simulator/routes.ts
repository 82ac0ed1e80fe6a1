/** The endpoints of the simulated service, and the route of a request. */
import type { Handler } from "./call.ts";
import { listFiles, sendChecksums, sendEml, sendFile, sendZip, showInformation } from "./downloads.ts";
import { ServiceError } from "./errors.ts";
import { listPacks, sendPackFile, showPack } from "./languages.ts";
import { listReceived, listSent, listSentBriefly } from "./listing.ts";
import { checkPassword, createPasswordGenerator, showRules } from "./passwords.ts";
import { jsonReply } from "./reply.ts";
import type { Operation } from "./scenario.ts";
import type { Settings, Version } from "./settings.ts";
import { createClientId, issueToken, mailCode, showVerification } from "./verification.ts";

export interface Route {
  readonly operation: Operation;
  readonly method: "GET" | "POST";
  readonly pattern: URLPattern;
  readonly handler: Handler;
  /** The first version with this endpoint, and the first without it. */
  readonly since?: Version;
  readonly until?: Version;
  /** The standard parameters that a request needs. Default: all. */
  readonly needs?: "everything" | "no client id" | "nothing";
  /** The type of a successful answer. Default: JSON. */
  readonly type?: string;
}

export interface FoundRoute {
  readonly route: Route;
  readonly path: Readonly<Record<string, string>>;
}

export function createRoutes({ oldPaths }: Settings): readonly Route[] {
  const user = "/api/users/:address";
  const transfer = "/api/transfers/:transfer";
  const pathOf = (name: "zip" | "eml" | "checksums") => {
    const isOld = oldPaths === true || (oldPaths !== false && oldPaths.includes(name));
    return isOld ? `${transfer}/files/${name}` : `${transfer}/${name}`;
  };
  const packs = "/api/products/:product/language-packs";
  const bytes = { type: "application/octet-stream" };
  const polling = { since: { major: 1, minor: 12 } };
  return [
    get("status", "/api/status", showStatus, { since: { major: 1, minor: 13 }, needs: "nothing" }),
    get("client-id", "/api/clients", createClientId, { needs: "no client id" }),
    get("verification", `${user}/verification`, showVerification),
    post("verification-code", `${user}/verification/code/email`, mailCode),
    post("verification-token", `${user}/verification/token`, issueToken),
    get("received", `${user}/transfers/received-transfers`, listReceived, polling),
    get("sent", `${user}/transfers/sent-transfers`, listSent, polling),
    get("sent-legacy", `${user}/transfers`, listSentBriefly, { until: { major: 2, minor: 0 } }),
    get("info", transfer, showInformation),
    get("files", `${transfer}/files`, listFiles),
    get("zip", pathOf("zip"), sendZip, { type: "application/zip" }),
    get("eml", pathOf("eml"), sendEml, bytes),
    get("checksums", pathOf("checksums"), sendChecksums, { type: "text/csv" }),
    get("file", `${transfer}/files/:file`, sendFile, bytes),
    get("password-generate", "/api/password", createPasswordGenerator()),
    post("password-check", "/api/password", checkPassword),
    get("password-rules", "/api/password/requirements", showRules),
    get("languages", packs, listPacks),
    get("language", `${packs}/:pack`, showPack),
    get("language-file", `${packs}/:pack/:file+`, sendPackFile, bytes),
  ];
}

/** The first route that matches: `/files/zip` precedes `/files/:file`. Throws a ServiceError if none does. */
export function findRoute(routes: readonly Route[], method: string, pathname: string): FoundRoute {
  const first = routes.find(({ pattern }) => pattern.test({ pathname }));
  if (first === undefined) throw new ServiceError("noSuchEndpoint");
  const alike = routes.filter(({ pattern }) => pattern.pathname === first.pattern.pathname);
  const route = alike.find((candidate) => candidate.method === method);
  if (route === undefined) {
    const allow = alike.map((candidate) => candidate.method).join(", ");
    throw new ServiceError("methodNotAllowed", undefined, { Allow: allow });
  }
  return { route, path: decodeGroups(route.pattern.exec({ pathname })?.pathname.groups ?? {}) };
}

type RouteOptions = Pick<Route, "since" | "until" | "needs" | "type">;

function get(operation: Operation, path: string, handler: Handler, options: RouteOptions = {}): Route {
  return { operation, method: "GET", pattern: new URLPattern({ pathname: path }), handler, ...options };
}

function post(operation: Operation, path: string, handler: Handler): Route {
  return { operation, method: "POST", pattern: new URLPattern({ pathname: path }), handler };
}

/** The only answer without an envelope. */
const showStatus: Handler = (_call, { settings }) =>
  jsonReply(200, { apiVersions: { uiApiVersions: [settings.version] } });

function decodeGroups(groups: Readonly<Record<string, string | undefined>>): Record<string, string> {
  try {
    return Object.fromEntries(
      Object.entries(groups).map(([name, value = ""]) => [name, decodeURIComponent(value)]),
    );
  } catch {
    throw new ServiceError("badPath");
  }
}
