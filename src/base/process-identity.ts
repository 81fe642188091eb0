// The names of a process: its identity in leader election, which is unique across restarts, and its name for people.
import { hostname } from 'node:os'
import type { Random } from './clock.ts'
import { randomUuid } from './identifiers.ts'

/** Host name and a random UUID. */
export const processIdentity = (random: Random): string => `${hostname()}_${randomUuid(random)}`

/** Program, host name and process ID, such as `stowage-node@worker-1:812`. */
export const processName = (program: string): string => `${program}@${hostname()}:${process.pid}`
