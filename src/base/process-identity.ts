// The identity of a process in leader election: host name and a random UUID, unique across restarts.
import { hostname } from 'node:os'
import type { Random } from './clock.ts'
import { randomUuid } from './identifiers.ts'

export const processIdentity = (random: Random): string => `${hostname()}_${randomUuid(random)}`
