// Shares a number of workers between the work queues of a process. Some are reserved for each queue, so that a queue with many
// keys does not delay the first keys of another. The others are for any queue; a worker that becomes free goes to the waiting
// queue with the fewest workers, and among equals to the one that has waited longest.
//
//   100 workers, 9 queues: 2 are reserved for each, 82 are for any
//   claims       84 running, 1,000 ready
//   attachments   0 running,     2 ready  →  both start at once

export interface WorkerBudget {
  /** Adds a queue. `wake` is called when a worker has become free for the queue after `tryTake` returned false. */
  join(wake: () => void): WorkerShare
}

/** The workers of one queue. */
export interface WorkerShare {
  /** Takes a worker and returns true, or returns false if none is free for this queue; the queue is woken when one is. */
  tryTake(): boolean
  release(): void
  /** Removes the queue from the budget, with the workers that it has not released. */
  leave(): void
}

interface Member {
  readonly wake: () => void
  running: number
  /** Whether a worker that became free is kept for the next `tryTake` of this queue. Counted in `running`. */
  hasGrant: boolean
  isWaiting: boolean
  /** Increases with every worker taken, to prefer the queue that has waited longest. */
  lastTurn: number
}

/** A quarter of the workers is reserved for the queues together, and at least one for each queue. */
const reservedPerQueue = (workers: number, queues: number): number => Math.max(1, Math.floor(workers / 4 / queues))

/** If there are fewer workers than queues, each queue still has one. */
export function createWorkerBudget(workers: number): WorkerBudget {
  const members = new Set<Member>()
  let turn = 0

  function canTake(member: Member): boolean {
    const reservedCount = reservedPerQueue(workers, members.size)
    if (member.running < reservedCount) return true
    let sharedCount = workers - members.size * reservedCount
    for (const { running } of members) sharedCount -= Math.max(0, running - reservedCount)
    return sharedCount > 0
  }

  function take(member: Member): void {
    member.running++
    member.isWaiting = false
    member.lastTurn = ++turn
  }

  /** Gives free workers to waiting queues. */
  function grantFreeWorkers(): void {
    for (;;) {
      const candidates = [...members].filter((member) => member.isWaiting && canTake(member))
      const [next] = candidates.sort((a, b) => a.running - b.running || a.lastTurn - b.lastTurn)
      if (!next) return
      take(next)
      next.hasGrant = true
      next.wake()
    }
  }

  function join(wake: () => void): WorkerShare {
    const member: Member = { wake, running: 0, hasGrant: false, isWaiting: false, lastTurn: 0 }
    members.add(member)
    return {
      tryTake() {
        if (member.hasGrant) {
          member.hasGrant = false
          return true
        }
        if (canTake(member)) {
          take(member)
          return true
        }
        member.isWaiting = true
        return false
      },
      release() {
        member.running--
        grantFreeWorkers()
      },
      leave() {
        members.delete(member)
        grantFreeWorkers()
      },
    }
  }

  return { join }
}
