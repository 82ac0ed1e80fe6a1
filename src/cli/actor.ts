/** The operator who runs a command, for the journal. */
import { hostname } from "node:os";
import { nameOfUser } from "../host/permission.ts";
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
