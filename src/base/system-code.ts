/** The system's name for what went wrong, such as `ENOENT`; empty where it was not the system that failed. */
export function systemCode(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}
