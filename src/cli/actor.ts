/** The operator who runs a command, for the journal. */
import { hostname, userInfo } from "node:os";
import { type Actor, actorOf } from "../model/order.ts";
import type { Context } from "./context.ts";

/** Root is named by the user who became root with sudo, where that is known. */
export function operatorOf({ env }: Pick<Context, "env">): Actor {
  const user = nameOfUser();
  const { SUDO_USER: sudoer } = env;
  const isRoot = process.getuid?.() === 0;
  const who = isRoot && sudoer !== undefined && sudoer !== "" ? `${sudoer} (sudo)` : user;
  return actorOf(who, hostname());
}

/** The system may have no name for the user, as in a container. */
export function nameOfUser(): string {
  try {
    return userInfo().username;
  } catch {
    return `user ${process.getuid?.() ?? "unknown"}`;
  }
}
