import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { parseUnit, planRun } from "../../../src/cli/in-unit.ts";
import { callCommand } from "../../support/command.ts";
import { ROOT } from "../../support/root.ts";

const UNIT = `# /etc/systemd/system/inlet@.service
[Unit]
User=not-this-one
[Service]
Type=notify
ExecStart=/opt/inlet/bin/inlet run --config /etc/inlet/%i.yaml
User=inlet
LoadCredential=secret:/etc/inlet/secrets
LoadCredential=other:/etc/inlet/other
ReadWritePaths=/srv/a \\
  /srv/b
StateDirectory=%p-%i
WatchdogSec=2min

# /etc/systemd/system/inlet@.service.d/own.conf
[Service]
LoadCredential=
LoadCredential=secret:/etc/inlet/new-secrets
Environment="HTTPS_PROXY=http://proxy.example:3128" INLET_LOG__LEVEL=debug
`;

describe("the settings of a unit", () => {
  test("are those of its section, with drop-ins, resets and its name", () => {
    expect(parseUnit("inlet@one", UNIT)).toEqual({
      command: ["/opt/inlet/bin/inlet", "run", "--config", "/etc/inlet/one.yaml"],
      properties: [
        ["User", "inlet"],
        ["ReadWritePaths", "/srv/a    /srv/b"],
        ["StateDirectory", "inlet-one"],
        ["LoadCredential", "secret:/etc/inlet/new-secrets"],
        ["Environment", '"HTTPS_PROXY=http://proxy.example:3128" INLET_LOG__LEVEL=debug'],
      ],
    });
  });

  test("of the unit that ships are its user, its folders and its credentials", () => {
    const shipped = readFileSync(join(ROOT, "systemd/inlet.service"), "utf8");
    const { properties, command } = parseUnit("inlet", shipped);
    expect(command).toEqual(["/opt/inlet/bin/inlet", "run", "--config", "/etc/inlet/inlet.yaml"]);
    expect(Object.fromEntries(properties)).toMatchObject({
      User: "inlet",
      StateDirectory: "inlet",
      RuntimeDirectory: "inlet",
      LoadCredential: "secret:/etc/inlet/secrets",
      ReadWritePaths: "/srv/inbox",
      ProtectSystem: "strict",
    });
  });
});

test("needs root, and names the whole command", async () => {
  const asUser = vi.spyOn(process, "geteuid").mockReturnValue(1_000);
  onTestFinished(() => asUser.mockRestore());
  const refused = callCommand(["config", "check", "--json", "--unit", "inlet"]);
  await expect(refused).rejects.toThrow("sudo inlet config check --unit inlet");
});

describe("the command in a unit", () => {
  const OWN = ["/usr/bin/node", "/opt/own/bin/inlet.cjs"];
  const plan = (exec: string, words: readonly string[]) => {
    const args = planRun(parseUnit("inlet", `[Service]\nExecStart=${exec}\n`), "name", words, OWN);
    return args.slice(args.indexOf("--") + 1);
  };

  test("is the program of the unit, with its configuration", () => {
    const inlet = "-/opt/inlet/bin/inlet";
    expect(plan(`${inlet} run --config /etc/a.yaml`, ["doctor"])).toEqual([
      "/opt/inlet/bin/inlet",
      "doctor",
      "--config",
      "/etc/a.yaml",
    ]);
    expect(plan(`${inlet} once --config=/etc/a.yaml`, ["doctor", "--json"])).toEqual([
      "/opt/inlet/bin/inlet",
      "doctor",
      "--json",
      "--config=/etc/a.yaml",
    ]);
    expect(plan(`/usr/bin/node "/opt/my inlet/bin/inlet.cjs" run`, ["doctor"])).toEqual([
      "/usr/bin/node",
      "/opt/my inlet/bin/inlet.cjs",
      "doctor",
    ]);
  });

  test("has the named configuration, and this program where the unit's is not known", () => {
    const words = ["doctor", "--config", "/tmp/b.yaml"];
    expect(plan("/opt/inlet/bin/inlet run --config /etc/a.yaml", words)).toEqual([
      "/opt/inlet/bin/inlet",
      ...words,
    ]);
    expect(plan("/usr/local/bin/start-inlet", ["doctor"])).toEqual([...OWN, "doctor"]);
  });

  test("leaves the runtime folder of a running daemon alone", () => {
    const args = planRun(parseUnit("inlet", UNIT), "name", ["doctor"], OWN);
    expect(args).toContain("--property=RuntimeDirectoryPreserve=yes");
    expect(args).toContain("--property=LoadCredential=secret:/etc/inlet/new-secrets");
  });
});
