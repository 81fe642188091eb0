// IoLimits for a node without a writable IO controller. Every limit is reported as not enforced; the removal of limits succeeds.
import type { IoLimits } from '../host.ts'

export const createNoLimits = (message: string): IoLimits => ({
  version: 'none',
  apply: async (_device, limit) =>
    limit === 'none' ? { is: 'enforced', cgroups: [], caveats: [] } : { is: 'not enforced', message },
  clear: async () => {},
  appliedLimits: async () => [],
})
