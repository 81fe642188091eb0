// What the checkers found, kept until the scenario looks: they are called from places that must not throw.
import type { World } from '../world.ts'

export interface Court {
  convict(crime: string): void
  /** Throws with the seed and what led to it, if anything was found. */
  adjourn(): void
}

const CRIMES_MAX = 20 // the first ones tell the story
const TRACE_LINES = Number(process.env.SIM_TRACE_LINES ?? 120)

/** `evidence`: what there is to see when the verdict is read. */
export function createCourt(world: World, what = `seed ${world.seed}`, evidence: () => string = () => ''): Court {
  const crimes: string[] = []
  return {
    convict(crime) {
      world.note(`CHECK: ${crime}`)
      if (crimes.length < CRIMES_MAX) crimes.push(`${(world.nowMs / 1_000).toFixed(3)}s: ${crime}`)
    },
    adjourn() {
      if (crimes.length > 0) {
        const led = world.trace().slice(-TRACE_LINES)
        throw new Error([`${what}:`, ...crimes, '-- what is there', evidence(), '-- what led to it', ...led].join('\n'))
      }
    },
  }
}
