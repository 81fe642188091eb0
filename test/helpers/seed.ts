// Chooses the seed of a randomized test: the environment variable of the test, a new seed with FRESH_SEEDS=1, or a fixed seed.
const FIXED_SEED = 20_260_101

export function seedFrom(variable: string): number {
  const override = process.env[variable]
  if (override !== undefined) return Number(override)
  return process.env.FRESH_SEEDS === '1' ? Math.floor(Math.random() * 2 ** 31) : FIXED_SEED
}
