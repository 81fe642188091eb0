// The names of a process: its identity in leader election, which is unique across restarts, and a human-readable name.
import { hostname } from 'node:os'
import type { Random } from './clock.ts'
import { randomUuid } from './identifiers.ts'

/** Returns the host name and a random UUID, such as `worker-1_3fa85f64-5717-4562-b3fc-2c963f66afa6`. */
export const processIdentity = (random: Random): string => `${hostname()}_${randomUuid(random)}`

/** Returns the program, the host name and the process ID, such as `stowage-node@worker-1:812`. */
export const processName = (program: string): string => `${program}@${hostname()}:${process.pid}`
