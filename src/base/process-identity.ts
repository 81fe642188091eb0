// What a process is called among others that do the same work: by its machine, and by chance, so that no process ever has
// the name of one before it.
import { hostname } from 'node:os'
import type { Random } from './clock.ts'
import { randomUuid } from './identifiers.ts'

export const processIdentity = (random: Random): string => `${hostname()}_${randomUuid(random)}`
