// Limits how many async functions run at once; the others wait in FIFO order.

export function limitConcurrency(max: number): <T>(run: () => Promise<T>) => Promise<T> {
  const waiters: (() => void)[] = []
  let runningCount = 0
  return async (run) => {
    if (runningCount >= max) await new Promise<void>((resolve) => waiters.push(resolve))
    else runningCount++
    try {
      return await run()
    } finally {
      const startNext = waiters.shift()
      if (startNext)
        startNext() // uses the slot of this call
      else runningCount--
    }
  }
}
