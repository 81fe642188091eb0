// The seed of a randomised test. Fixed by default, so that CI is deterministic; `npm run prove` sets FRESH_SEEDS=1 for new
// ones, and a failing run prints its seed, which the test's own variable replays.
const FIXED_SEED = 20_260_101

export function seedFrom(variable: string): number {
  const given = process.env[variable]
  if (given !== undefined) return Number(given)
  return process.env.FRESH_SEEDS === '1' ? Math.floor(Math.random() * 2 ** 31) : FIXED_SEED
}
