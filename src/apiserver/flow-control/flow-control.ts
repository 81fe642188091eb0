// Shares the server's capacity among users. Requests are classified into levels. Each level has a number of seats, and a running
// request occupies as many of them as its width. A level serves the users of waiting requests in turn, and rejects requests that
// wait too long or exceed the queue. The group system:masters and requests for non-resource paths are exempt. Nodes and
// components have their own level, so that other users cannot lock them out.
import { tooManyRequests } from '../../api/status-error.ts'
import type { Clock } from '../../base/clock.ts'
import type { Seats } from '../http/messages.ts'
import { ACCOUNTS_GROUP, MASTERS_GROUP, type UserInfo } from '../security/index.ts'

export type LevelName = 'system' | 'workload' | 'default'

export interface FlowControlOptions {
  readonly clock: Clock
  /** Number of seats of each level, in addition to those that other levels lend to it. */
  readonly concurrency?: Partial<Readonly<Record<LevelName, number>>>
}

export interface FlowRequest {
  readonly user: UserInfo
  readonly group: string
  /** Empty for a path. */
  readonly resource: string
  /** The number of seats that the request occupies: 1 for a simple request. Default: 1. */
  readonly width?: number
}

export interface FlowControl {
  /**
   * Returns the seats of the request, immediately or when they are free; undefined if the request is exempt.
   * Throws or rejects with 429 if too many requests wait, or if the request has waited too long.
   */
  start(request: FlowRequest): Promise<Seats> | Seats | undefined
  /** Returns a message if a request of the system level was rejected within the last REJECTION_REPORT_MS. */
  problem(): string | undefined
  /** Returns the number of seats that a level's running requests occupy, and the number of its waiting requests. */
  stats(level: LevelName): { readonly seatsInUse: number; readonly waiting: number }
}

const CONCURRENCY: Readonly<Record<LevelName, number>> = { system: 64, workload: 128, default: 64 }
/** Share of its concurrency that a level does not lend to other levels. */
const RESERVED_SHARE = 1 / 4
/** Requests of one user that may wait. */
export const USER_WAITING_MAX = 200
/** Requests of all users of a level that may wait. */
export const LEVEL_WAITING_MAX = 2_000
const WAIT_MS_MAX = 15_000
/** How long a rejected request of the system level makes the server not ready. */
const REJECTION_REPORT_MS = 10_000
/** Share of a level's seats that the requests of one user may occupy, so that other users need not wait for them. */
const USER_SHARE_MAX = 3 / 4
/** A single request occupies at most this share of the seats of its level. */
const WIDTH_SHARE_MAX = 1 / 4

interface WaitingRequest {
  run(): void
}

interface Level {
  readonly name: LevelName
  readonly concurrency: number
  /** Includes seats that other levels lend to this one. */
  seatsInUse: number
  waiting: number
  /** The time at which a request was last rejected. */
  rejectedAtMs: number
  readonly seatsInUseByUser: Map<string, number>
  /** Waiting requests by user. The first user in the map who may occupy more seats is the next one. */
  readonly queues: Map<string, WaitingRequest[]>
}

export function createFlowControl({ clock, concurrency = {} }: FlowControlOptions): FlowControl {
  const levels = (['system', 'workload', 'default'] as const).map(
    (name): Level => ({
      name,
      concurrency: concurrency[name] ?? CONCURRENCY[name],
      seatsInUse: 0,
      waiting: 0,
      rejectedAtMs: Number.NEGATIVE_INFINITY,
      seatsInUseByUser: new Map(),
      queues: new Map(),
    }),
  )

  /** Returns the number of seats of the level: its own, and those that other levels neither use nor reserve. */
  function capacityOf(level: Level): number {
    let capacity = level.concurrency
    for (const otherLevel of levels) {
      if (otherLevel === level || otherLevel.waiting > 0) continue
      const lentCapacity =
        otherLevel.concurrency - Math.max(otherLevel.seatsInUse, otherLevel.concurrency * RESERVED_SHARE)
      capacity += Math.max(0, lentCapacity)
    }
    return capacity
  }

  const hasRoomForUser = (level: Level, user: string, capacity: number): boolean =>
    (level.seatsInUseByUser.get(user) ?? 0) < capacity * USER_SHARE_MAX

  function runNext(): void {
    for (const level of levels) {
      while (level.waiting > 0) {
        const capacity = capacityOf(level)
        if (level.seatsInUse >= capacity) break
        const user = nextUser(level, capacity)
        if (user === undefined) break
        const queue = level.queues.get(user)!
        const nextRequest = queue.shift()!
        level.queues.delete(user)
        if (queue.length > 0) level.queues.set(user, queue) // at the end, so that the other users come first
        level.waiting--
        nextRequest.run()
      }
    }
  }

  function nextUser(level: Level, capacity: number): string | undefined {
    for (const user of level.queues.keys()) if (hasRoomForUser(level, user, capacity)) return user
    return undefined
  }

  class LevelSeats implements Seats {
    readonly #level: Level
    readonly #user: string
    #width: number

    constructor(level: Level, user: string, width: number) {
      this.#level = level
      this.#user = user
      this.#width = width
      addSeatsInUse(level, user, width)
    }

    get hasWaiters() {
      return this.#level.waiting > 0
    }

    release() {
      if (this.#width === 0) return
      addSeatsInUse(this.#level, this.#user, -this.#width)
      this.#width = 0
      runNext()
    }
  }

  function enqueue(level: Level, user: string, width: number): Promise<Seats> {
    const queue = level.queues.get(user) ?? []
    if (queue.length >= USER_WAITING_MAX || level.waiting >= LEVEL_WAITING_MAX) {
      level.rejectedAtMs = clock.monotonicMs()
      throw tooManyRequests(
        queue.length >= USER_WAITING_MAX
          ? `user ${JSON.stringify(user)} has ${USER_WAITING_MAX} requests waiting; send fewer at a time`
          : `${LEVEL_WAITING_MAX} requests are waiting; try again in a second`,
      )
    }
    return new Promise((resolve, reject) => {
      const cancelTimer = clock.after(WAIT_MS_MAX, () => {
        const index = queue.indexOf(request)
        queue.splice(index, 1)
        if (queue.length === 0) level.queues.delete(user)
        level.waiting--
        level.rejectedAtMs = clock.monotonicMs()
        reject(tooManyRequests(`the request waited ${WAIT_MS_MAX / 1_000} s for its turn; try again later`))
      })
      const request: WaitingRequest = {
        run: () => {
          cancelTimer()
          resolve(new LevelSeats(level, user, width))
        },
      }
      queue.push(request)
      level.queues.set(user, queue)
      level.waiting++
    })
  }

  return {
    start(request) {
      const name = levelOf(request)
      if (!name) return undefined
      const level = levels.find((candidate) => candidate.name === name)!
      const width = Math.max(1, Math.min(request.width ?? 1, Math.floor(level.concurrency * WIDTH_SHARE_MAX)))
      const user = request.user.name
      const capacity = capacityOf(level)
      const hasRoom = level.seatsInUse < capacity && hasRoomForUser(level, user, capacity)
      // Only requests of users who occupy too many seats may be overtaken.
      if (!hasRoom || (level.waiting > 0 && nextUser(level, capacity) !== undefined)) return enqueue(level, user, width)
      return new LevelSeats(level, user, width)
    },
    problem() {
      const { rejectedAtMs, waiting } = levels.find(({ name }) => name === 'system')!
      if (clock.monotonicMs() - rejectedAtMs > REJECTION_REPORT_MS) return undefined
      return `overloaded: requests of nodes or components were rejected within the last ${REJECTION_REPORT_MS / 1_000} s, and ${waiting} wait`
    },
    stats(name) {
      const { seatsInUse, waiting } = levels.find((level) => level.name === name)!
      return { seatsInUse, waiting }
    },
  }
}

function addSeatsInUse(level: Level, user: string, width: number): void {
  level.seatsInUse += width
  const userSeats = (level.seatsInUseByUser.get(user) ?? 0) + width
  if (userSeats === 0) level.seatsInUseByUser.delete(user)
  else level.seatsInUseByUser.set(user, userSeats)
}

const SYSTEM_ACCOUNTS_GROUP = `${ACCOUNTS_GROUP}:kube-system`
const SYSTEM_USERS = ['system:kube-controller-manager', 'system:kube-scheduler']

/** Returns undefined for requests that are exempt. */
function levelOf({ user: { name, groups }, group, resource }: FlowRequest): LevelName | undefined {
  if (groups.includes(MASTERS_GROUP) || resource === '') return undefined
  if (groups.includes('system:nodes') || SYSTEM_USERS.includes(name)) return 'system'
  if (groups.includes(SYSTEM_ACCOUNTS_GROUP)) return 'system'
  if (groups.includes(ACCOUNTS_GROUP)) {
    return group === 'coordination.k8s.io' && resource === 'leases' ? 'system' : 'workload'
  }
  return 'default'
}
