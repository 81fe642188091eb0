// Lets the event loop serve everything that is ready before long work goes on.

export const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
