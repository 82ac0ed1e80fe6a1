/** Every exit code: its number, what it means, which fault ends with it, and what it says about one command. */
import type { Command } from "commander";
import { actorOf } from "../base/fault-codes.ts";
import type { Actor } from "../base/fault-kinds.ts";

/** By the outcome of a command. */
export const EXIT_CODES = {
  fine: { code: 0, meaning: "success" },
  failed: { code: 1, meaning: "failure; the message says why" },
  usage: { code: 2, meaning: "wrong usage, or a configuration or installation that has to change" },
  attention: {
    code: 3,
    meaning:
      "a person has to act: a password, a quarantined transfer, a client id to register, an address to verify, a full disk, refused notifications",
  },
  unreachable: { code: 4, meaning: "the service, the queue or the daemon cannot be reached" },
  denied: { code: 5, meaning: "this user may not read or act here; the message names the file or folder" },
  interrupted: { code: 130, meaning: "interrupted" },
} as const;

export type Outcome = keyof typeof EXIT_CODES;

const OUTCOMES = Object.keys(EXIT_CODES) as Outcome[];

/** The outcome of another process of Inlet. */
export function outcomeOfCode(code: number): Outcome {
  return OUTCOMES.find((outcome) => EXIT_CODES[outcome].code === code) ?? "failed";
}

/** What the codes of one command mean, where that is more than the table says. */
type Meanings = Readonly<Partial<Record<Outcome, string>>>;

const MEANINGS = new WeakMap<Command, Meanings>();

/** Adds them to the end of the help, and to the documentation. */
export function addExitCodes(command: Command, meanings: Meanings): Command {
  MEANINGS.set(command, meanings);
  const lines = exitCodesOf(command).map(([code, meaning]) => `  ${code}  ${meaning}`);
  return command.addHelpText("after", ["", "Exit codes:", ...lines].join("\n"));
}

/** The codes of a command with a meaning of their own, in the order of the table. */
export function exitCodesOf(command: Command): [code: number, meaning: string][] {
  const meanings = MEANINGS.get(command) ?? {};
  return OUTCOMES.flatMap((outcome) => {
    const meaning = meanings[outcome];
    return meaning === undefined ? [] : [[EXIT_CODES[outcome].code, meaning]];
  });
}

const OUTCOME_OF_ACTOR: Readonly<Record<Actor, Outcome>> = {
  none: "unreachable",
  person: "attention",
  setup: "usage",
  rights: "denied",
  unknown: "failed",
};

/** How a command ends after a fault. */
export function outcomeOfFault({ code }: { readonly code: string }): Outcome {
  return code === "STOPPED" ? "interrupted" : OUTCOME_OF_ACTOR[actorOf(code)];
}
