// Fixes the seed of property tests. FRESH_SEEDS=1 uses new seeds. A failing property prints its seed and path, which
// `fc.assert(…, { seed, path })` replays.
import fc from 'fast-check'

if (process.env.FRESH_SEEDS !== '1') fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: 20_260_101 })
