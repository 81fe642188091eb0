// Random identifiers: UIDs, and names from `metadata.generateName`.
import type { Random } from './clock.ts'

/** Returns a version 4 UUID. */
export function randomUuid(random: Random): string {
  const hexGroup = () =>
    Math.floor(random() * 0x10000)
      .toString(16)
      .padStart(4, '0')
  const version = (0x4000 | Math.floor(random() * 0x1000)).toString(16)
  const variant = (0x8000 | Math.floor(random() * 0x4000)).toString(16)
  return `${hexGroup()}${hexGroup()}-${hexGroup()}-${version}-${variant}-${hexGroup()}${hexGroup()}${hexGroup()}`
}

/** The Kubernetes alphabet, which has no vowels. */
const SUFFIX_ALPHABET = 'bcdfghjklmnpqrstvwxz2456789'
const SUFFIX_LENGTH = 5
const NAME_LENGTH_MAX = 63

export function generateName(prefix: string, random: Random): string {
  let suffix = ''
  for (let i = 0; i < SUFFIX_LENGTH; i++) suffix += SUFFIX_ALPHABET[Math.floor(random() * SUFFIX_ALPHABET.length)]
  return prefix.slice(0, NAME_LENGTH_MAX - SUFFIX_LENGTH) + suffix
}
