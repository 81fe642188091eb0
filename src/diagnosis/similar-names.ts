// Finds names that a user may have meant: names that contain the given one, are part of it, or differ from it in few
// characters.

const SIMILAR_MAX = 3

export function findSimilarNames(name: string, candidates: Iterable<string>): string[] {
  const distanceMax = Math.max(1, Math.floor(name.length / 3))
  return [...new Set(candidates)]
    .map((candidate) => ({
      candidate,
      distance: candidate.includes(name) || name.includes(candidate) ? 0 : editDistance(name, candidate, distanceMax),
    }))
    .filter(({ distance }) => distance <= distanceMax)
    .sort((a, b) => a.distance - b.distance || (a.candidate < b.candidate ? -1 : 1))
    .slice(0, SIMILAR_MAX)
    .map(({ candidate }) => candidate)
}

/** Returns the number of inserted, removed and replaced characters, or a number above `max` if there are more. */
function editDistance(a: string, b: string, max: number): number {
  if (Math.abs(a.length - b.length) > max) return max + 1
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let row = 1; row <= a.length; row++) {
    const current = [row]
    for (let column = 1; column <= b.length; column++) {
      const replaced = previous[column - 1]! + (a[row - 1] === b[column - 1] ? 0 : 1)
      current.push(Math.min(replaced, previous[column]! + 1, current[column - 1]! + 1))
    }
    previous = current
  }
  return previous[b.length]!
}
