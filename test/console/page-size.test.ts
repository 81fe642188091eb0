// Checks the compressed size of the page: every file that index.html loads at once or on demand. dist/console may also have
// files of earlier builds, which are not counted.
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'

const DIR = join(import.meta.dirname, '../../dist/console')
const BYTES_MAX = 120_000
const FILE_NAME = /[\w-]+-[A-Z0-9]{8}\.(?:js|css)/g

/** Returns index.html and every file that it mentions, directly or through other files. */
function filesOfPage(): Set<string> {
  const files = new Set(['index.html'])
  for (const file of files) {
    for (const [name] of readFileSync(join(DIR, file), 'utf8').matchAll(FILE_NAME)) files.add(name)
  }
  return files
}

it.each(['br', 'gz'])('the page has at most 120 KB in total, compressed as %s', (extension) => {
  const files = [...filesOfPage()]
  expect(files.length).toBeGreaterThan(8) // the screens that are loaded on demand are counted too
  const bytes = files.reduce((sum, file) => sum + statSync(join(DIR, `${file}.${extension}`)).size, 0)
  expect(bytes).toBeLessThanOrEqual(BYTES_MAX)
})
