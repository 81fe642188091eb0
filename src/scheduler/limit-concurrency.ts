// Limits how many async functions run at once; the others wait in FIFO order.

export function limitConcurrency(max: number): <T>(run: () => Promise<T>) => Promise<T> {
  const waiting: (() => void)[] = []
  let running = 0
  return async (run) => {
    if (running >= max) await new Promise<void>((resolve) => waiting.push(resolve))
    else running++
    try {
      return await run()
    } finally {
      const startNext = waiting.shift()
      if (startNext)
        startNext() // uses the slot of this call
      else running--
    }
  }
}
