// Creates the Host of this node: every interface of host.ts with its implementation.
import type { Clock } from '../base/clock.ts'
import { createCounters } from './counters.ts'
import { createFiles } from './files.ts'
import { createFilesystems } from './filesystems.ts'
import type { Host } from './host.ts'
import { openLimits } from './limits/open-limits.ts'
import { createLoops } from './loops.ts'
import { createMounts } from './mounts.ts'
import { createRun } from './run.ts'
import { createUsage } from './usage.ts'

export async function openHost({ clock }: { readonly clock: Clock }): Promise<Host> {
  const run = createRun({ clock })
  const mounts = createMounts({ run })
  const limits = await openLimits()
  return {
    files: createFiles({ run }),
    loops: createLoops({ run, clock, mounts, clearLimits: (device) => limits.clear(device) }),
    filesystems: createFilesystems({ run, mounts }),
    mounts,
    limits,
    counters: createCounters({ clock }),
    usage: createUsage({ clock }),
  }
}
