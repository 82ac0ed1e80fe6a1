/** Where the configuration is looked for where nobody says. A file of its own: who needs it need not load the rest. */
export const DEFAULT_PATH = "/etc/inlet/inlet.yaml";
