// Every relative link of the documentation leads to a file that exists, and every anchor to a heading.
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const README_LINES_MAX = 150

const pages = [
  ...['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'CHANGELOG.md', 'examples/provisioner/README.md'],
  ...readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => join('docs', name)),
]

it('every link in the documentation leads to a page and heading that exist', () => {
  expect(pages.flatMap(brokenLinksOf)).toEqual([])
})

it('docs/README.md links every page', () => {
  const linked = new Set(linksOf('docs/README.md').map(({ file }) => file))
  expect(pages.filter((page) => page.startsWith('docs/') && page !== 'docs/README.md' && !linked.has(page))).toEqual([])
})

it('every source file that the documentation names exists', () => {
  const sources = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' }).map((name) => `/src/${name}`)
  const others = ['test', 'bench', 'examples', 'scripts'].flatMap((dir) =>
    readdirSync(join(ROOT, dir), { recursive: true, encoding: 'utf8' }).map((name) => `/${dir}/${name}`),
  )
  const files = [...sources, ...others]
  const missing = pages
    .filter((page) => page !== 'CHANGELOG.md')
    .flatMap((page) =>
      [...read(page).matchAll(/`([\w./-]+\.m?ts)\b[^`]*`/g)]
        .map(([, name]) => name!)
        .filter((name) => !files.some((file) => file.endsWith(`/${name}`)))
        .map((name) => `${page}: ${name}`),
    )
  expect(missing).toEqual([])
})

it(`the README has at most ${README_LINES_MAX} lines`, () => {
  expect(read('README.md').split('\n').length).toBeLessThanOrEqual(README_LINES_MAX)
})

function brokenLinksOf(page: string): string[] {
  return linksOf(page)
    .filter(({ file, anchor }) => !existsSync(join(ROOT, file)) || (anchor && !anchorsOf(file).has(anchor)))
    .map(({ text }) => `${page}: ${text}`)
}

function linksOf(
  page: string,
): { readonly text: string; readonly file: string; readonly anchor: string | undefined }[] {
  const links = [...read(page).matchAll(/\]\(([^)\s]+)\)/g)].map(([, text]) => text!)
  return links
    .filter((text) => !/^[a-z]+:/.test(text))
    .map((text) => {
      const [path, anchor] = text.split('#') as [string, string?]
      const file = path === '' ? page : relative(ROOT, join(ROOT, dirname(page), path))
      return { text, file, anchor }
    })
}

/** As GitHub makes them: lower case, punctuation dropped, spaces as hyphens. */
function anchorsOf(file: string): Set<string> {
  if (statSync(join(ROOT, file)).isDirectory()) return new Set()
  const headings = [...read(file).matchAll(/^#+ (.*)$/gm)].map(([, heading]) => heading!)
  return new Set(
    headings.map((heading) =>
      heading
        .toLowerCase()
        .replace(/[^\p{L}\p{N}\s_-]/gu, '')
        .replaceAll(' ', '-'),
    ),
  )
}

function read(page: string): string {
  return readFileSync(join(ROOT, page), 'utf8')
}
