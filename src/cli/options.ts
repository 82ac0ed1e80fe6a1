/** Options that several commands have. */
import type { Command } from "commander";

export function addConfig(command: Command): Command {
  return command.option(
    "--config <file>",
    "the configuration (default: INLET_CONFIG, else /etc/inlet/inlet.yaml)",
  );
}

/** For an option that may be given more than once. */
export function gather(value: string, before: readonly string[] = []): string[] {
  return [...before, value];
}
