// Keeps invented vocabulary out of code and prose: if Kubernetes, CSI or common usage has a word, that word is used.
// CONTRIBUTING.md describes the voice; these tests only catch words and names that had to be replaced everywhere.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

const AVOIDED_WORDS =
  /\b(whoever|nobody|somebody|anybody|verdicts?|convict(?:s|ed)?|ambush(?:es)?|shel(?:f|ves)|matchmakers?|likeness|mend(?:s|ed|ing)?|opinions?|happenings?|crimes?|wish(?:es)?|trials?|judge[sd]?|told|tells)\b/gi

/** Uses that are contracts or names of other programs, by file. */
const ALLOWED_WORDS: Readonly<Record<string, readonly string[]>> = {
  'src/controllers/volume-changes/change-throttle.ts': ['wish'], // a key of a stored annotation
  'src/sim/workload/generate-plan.ts': ['ambush', 'ambushes'], // names of random streams: renaming them changes every seed
  'src/sim/workload/pod-actions.ts': ['nobody'], // part of saved plans
  'test/driver-interference.test.ts': ['nobody'], // the user with uid 65534
  'test/driver-sanity.test.ts': ['nobody'],
  'test/pods.test.ts': ['nobody'],
  'test/operations-guide.test.ts': ['nobody'],
  'test/kubectl/auth.ts': ['nobody'],
  'test/vocabulary.test.ts': ['all'],
}

it('code and documentation contain no avoided word', () => {
  const files = [
    'src',
    'test',
    'bench',
    'docs',
    'scripts',
    'examples',
    'charts',
    'packages',
    'README.md',
    'ARCHITECTURE.md',
    'CONTRIBUTING.md',
  ]
    .flatMap(filesIn)
    .filter((file) => /\.(ts|mjs|md|yaml|go|py)$/.test(file) && !/\/gen\/|node_modules/.test(file))
  expect(files.length).toBeGreaterThan(1_000)
  expect(files.flatMap(avoidedWordsIn)).toEqual([])
})

/** Pronouns, adverbs and participles that do not name the role of a variable. */
const AVOIDED_NAMES =
  'mine|ours|theirs|over|kept|held|gone|said|asked|wanted|shown|taken|refusal|whoever|again|elsewhere|enough'
/** Variables, destructured variables, and parameters of arrow functions and functions. */
const AVOIDED_DECLARATIONS = [
  `\\b(?:const|let|var)\\s+(${AVOIDED_NAMES})\\b`,
  `\\b(?:const|let|var)\\s*[{[][^=\\n]*\\b(${AVOIDED_NAMES})\\b(?!\\s*:)[^=\\n]*[}\\]]\\s*(?:=|of\\b)`,
  `(?<![.\\w])(${AVOIDED_NAMES})\\s*=>`,
  `\\((?:[^(){}\\n]*,\\s*)?(${AVOIDED_NAMES})\\b[^(){}\\n]*\\)\\s*(?::[^=\\n]{0,60})?=>`,
  `\\bfunction\\s+\\w+\\((?:[^)\\n]*,\\s*)?(${AVOIDED_NAMES})\\s*[?:,)]`,
].map((pattern) => new RegExp(pattern))

it('no variable or parameter has an avoided name', () => {
  const files = ['src', 'test', 'bench', 'examples'].flatMap(filesIn).filter((file) => /(?<!\/gen\/.*)\.ts$/.test(file))
  expect(files.length).toBeGreaterThan(1_000)
  const declarations = files
    .filter((file) => file !== 'test/vocabulary.test.ts' && !file.includes('node_modules'))
    .flatMap((file) =>
      readFileSync(join(ROOT, file), 'utf8')
        .split('\n')
        .flatMap((line, index) => {
          const name = AVOIDED_DECLARATIONS.map((pattern) => pattern.exec(line)?.[1]).find(Boolean)
          return name ? [`${file}:${index + 1}: ${name}`] : []
        }),
    )
  expect(declarations).toEqual([])
})

function filesIn(path: string): string[] {
  if (path.includes('.')) return [path]
  return readdirSync(join(ROOT, path), { recursive: true, withFileTypes: true, encoding: 'utf8' })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(ROOT.length))
}

function avoidedWordsIn(file: string): string[] {
  const allowedWords = ALLOWED_WORDS[file] ?? []
  if (allowedWords.includes('all')) return []
  return readFileSync(join(ROOT, file), 'utf8')
    .split('\n')
    .flatMap((line, index) =>
      [...line.replaceAll('nobody.example.com', '').matchAll(AVOIDED_WORDS)]
        .filter(([word]) => !allowedWords.includes(word.toLowerCase()))
        .map(([word]) => `${file}:${index + 1}: ${word}`),
    )
}
