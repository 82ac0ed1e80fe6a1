import type { PasswordRule } from "../../src/model/mailbox.ts";

const TRANSFER = { mailbox: "orders", sender: "a@b.example", trackingId: "t1", subject: "Offer" };

/** The password that a rule supplies. */
export async function readRulePassword(
  rule: PasswordRule | undefined,
  transfer = TRANSFER,
): Promise<string | undefined> {
  const { signal } = new AbortController();
  if (rule === undefined) return undefined;
  const { password } = rule;
  return (await ("read" in password ? password.read(signal) : password.ask(transfer, signal)))?.reveal();
}
