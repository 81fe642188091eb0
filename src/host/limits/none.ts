// IoLimits for a machine without a writable IO controller. It reports every limit as not enforced.
import type { IoLimits } from '../host.ts'

export const createNoLimits = (message: string): IoLimits => ({
  version: 'none',
  apply: async (_device, limit) =>
    limit === 'none' ? { is: 'enforced', cgroups: [], caveats: [] } : { is: 'not enforced', message },
  clear: async () => {},
  appliedLimits: async () => [],
})
