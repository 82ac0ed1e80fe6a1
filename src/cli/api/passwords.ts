/** `api password`: the service's rules for transfer passwords. */
import type { Command } from "commander";
import { Fault } from "../../base/faults.ts";
import type { PasswordRule } from "../../service/port.ts";
import { askHidden } from "../asking.ts";
import type { Context, Outcome, Run } from "../context.ts";
import { type Column, printJson, printRows, say } from "../printing.ts";
import { type ApiOptions, type PasswordOptions, readSecret, withService } from "./session.ts";

export function addPasswords(api: Command, run: Run): void {
  const password = api
    .command("password")
    .description("make, check and learn the rules of transfer passwords");
  const generate = password.command("generate").description("have the service make a password, and print it");
  generate.action(() => run((context) => generatePassword(context, generate.optsWithGlobals())));
  const check = password
    .command("check")
    .description("say which rules a password breaks")
    .option("--password-file <file>", "read the password from a file, or from standard input for -");
  check.action(() => run((context) => checkPassword(context, check.optsWithGlobals())));
  const rules = password.command("rules").description("list the rules that a transfer password must fulfil");
  rules.action(() => run((context) => showRules(context, rules.optsWithGlobals())));
}

function generatePassword(context: Context, options: ApiOptions): Promise<Outcome> {
  return withService(context, options, async ({ service }) => {
    const password = (await service.generatePassword(context.stop)).reveal();
    if (options.json) printJson(context, { password });
    else context.stdout.write(`${password}\n`);
    return "fine";
  });
}

function checkPassword(context: Context, options: ApiOptions & PasswordOptions): Promise<Outcome> {
  return withService(context, options, async ({ service }) => {
    const password =
      (await readSecret(context, options.passwordFile)) ?? (await askHidden(context, "Password to check: "));
    if (password === undefined) {
      throw new Fault("CONFIG_INVALID", {
        detail: "no password: give --password-file (- for standard input)",
      });
    }
    const check = await service.checkPassword(password, context.stop);
    printRows(context, options, RULE_COLUMNS, check.broken, check);
    if (check.valid) say(context, "The password fulfils all rules.");
    return check.valid ? "fine" : "attention";
  });
}

function showRules(context: Context, options: ApiOptions): Promise<Outcome> {
  return withService(context, options, async ({ service }) => {
    const rules = await service.passwordRules(context.stop);
    printRows(context, options, RULE_COLUMNS, rules);
    return "fine";
  });
}

const RULE_COLUMNS: readonly Column<PasswordRule>[] = [
  { title: "RULE", value: (rule) => rule.name },
  {
    title: "DETAILS",
    value: (rule) =>
      Object.entries(rule.details)
        .map(([name, value]) => `${name} ${typeof value === "string" ? value : JSON.stringify(value)}`)
        .join(", "),
  },
];
