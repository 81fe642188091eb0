// Stores the settings of this browser. A browser that keeps none, as in private windows, uses the defaults.

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
