/** Decides whether a request may read or act. */
import type { IncomingMessage } from "node:http";
import { Fault } from "../base/faults.ts";
import type { Role } from "../model/access.ts";
import type { Actor } from "../model/order.ts";
import type { ConsoleAccess } from "./port.ts";
import type { Authorization } from "./sessions.ts";

const NOBODY: Actor = { who: "", from: "" };

/**
 * Returns who has this role. Reading that is open has no name. `proof`: of a form. Throws `UNAUTHORIZED`, `NOT_ALLOWED`,
 * `TOKENS_THROTTLED` and `SECRET_UNREADABLE`.
 */
export async function requireRole(
  access: ConsoleAccess | undefined,
  role: Role,
  request: IncomingMessage,
  proof?: string,
): Promise<Actor> {
  if (role === "read" && (access === undefined || access.read === "open")) return NOBODY;
  if (access === undefined) throw new Fault("NOT_ALLOWED");
  await renewTokens(access);
  const purpose = role === "read" ? "read" : "change";
  const granted = requireGrant(await access.sessions.authorize(request, purpose, proof));
  if (role === "read" || granted.role === "operate") return granted.by;
  const detail = `The role ${granted.role} of ${granted.by.who} is not enough: this needs a token with the role operate, and http.actions: true.`;
  throw new Fault("NOT_ALLOWED", { detail });
}

export async function renewTokens(access: ConsoleAccess): Promise<void> {
  if (await access.renew()) return;
  throw new Fault("SECRET_UNREADABLE", {
    detail: "A token cannot be read now: see http.tokens in the configuration.",
  });
}

export function requireGrant(authorization: Authorization): Extract<Authorization, { kind: "granted" }> {
  if (authorization.kind === "granted") return authorization;
  throw new Fault(authorization.kind === "throttled" ? "TOKENS_THROTTLED" : "UNAUTHORIZED");
}
