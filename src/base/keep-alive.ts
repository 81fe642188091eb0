// Keeps the process alive until a promise settles. Timers of Clock.after do not keep it alive, so a command whose connections are all
// down while it waits for the next attempt would otherwise exit in between.

const INTERVAL_MS = 2 ** 30

export async function keepAliveUntil<T>(work: Promise<T>): Promise<T> {
  const timer = setInterval(() => {}, INTERVAL_MS)
  try {
    return await work
  } finally {
    clearInterval(timer)
  }
}
