// Keeps the process alive until a promise settles. Timers of Clock.after do not keep it alive, so a command that has no open
// connection while it waits for its next attempt would otherwise exit.

const INTERVAL_MS = 2 ** 30

export async function keepAliveUntil<T>(work: Promise<T>): Promise<T> {
  const timer = setInterval(() => {}, INTERVAL_MS)
  try {
    return await work
  } finally {
    clearInterval(timer)
  }
}
