/** `completion`: a script that lets a shell complete what is typed after `inlet`. */
import { Argument, type Command } from "commander";
import { formatBash } from "./completion/bash.ts";
import { formatFish } from "./completion/fish.ts";
import { type Table, tabulate } from "./completion/table.ts";
import { formatZsh } from "./completion/zsh.ts";
import type { Run } from "./context.ts";

const FORMATS: Readonly<Record<string, (table: Table) => string>> = {
  bash: formatBash,
  zsh: formatZsh,
  fish: formatFish,
};

const HELP = `
It completes commands, options, their choices, and files and folders. Make it anew after an update.

  inlet completion bash > /etc/bash_completion.d/inlet
  inlet completion zsh > /usr/local/share/zsh/site-functions/_inlet
  inlet completion fish > ~/.config/fish/completions/inlet.fish`;

/** `whole`: the program, with every command's options. */
export function define(command: Command, run: Run, whole: () => Promise<Command>): void {
  command
    .addArgument(new Argument("<shell>", "for which shell").choices(Object.keys(FORMATS)))
    .addHelpText("after", HELP)
    .action((shell: string) =>
      run(async ({ stdout }) => {
        stdout.write(FORMATS[shell]?.(tabulate(await whole())) ?? "");
        return "fine";
      }),
    );
}
