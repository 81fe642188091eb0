// Stores the user's settings in this browser. If the browser does not store them, as in private windows, the defaults apply.

const PREFIX = 'stowage-console.'

export function readPreference(name: string): string | undefined {
  try {
    return localStorage.getItem(PREFIX + name) ?? undefined
  } catch {
    return undefined
  }
}

export function writePreference(name: string, value: string): void {
  try {
    localStorage.setItem(PREFIX + name, value)
  } catch {
    // The setting lasts until the page is closed.
  }
}
