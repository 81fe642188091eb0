// Lets concurrent callers share one run of an async function, such as fetching etcd's newest revision. A caller that
// arrives after a run has started shares the next one, so its result is never older than the call.

export function shareRuns<T>(run: () => Promise<T>): () => Promise<T> {
  let currentRun: Promise<T> | undefined
  let isStarted = false
  let nextRun: Promise<T> | undefined

  function start(): Promise<T> {
    nextRun = undefined
    isStarted = false
    const startedRun = Promise.resolve().then(() => {
      isStarted = true // callers in the same tick share this run
      return run()
    })
    const finish = () => {
      if (currentRun === startedRun) currentRun = undefined
    }
    currentRun = startedRun
    startedRun.then(finish, finish)
    return startedRun
  }

  return () => {
    if (!currentRun) return start()
    if (!isStarted) return currentRun
    nextRun ??= currentRun.then(start, start)
    return nextRun
  }
}
