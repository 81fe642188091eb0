// Checks the documentation: relative links and anchors are valid, mentioned source files exist, the index is complete, the
// README is short, and no command writes credentials into the working directory.
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const README_LINES_MAX = 150

const pages = [
  ...['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'CHANGELOG.md', 'examples/provisioner/README.md'],
  ...['packages/create-provisioner/README.md', 'packages/create-provisioner/template/README.md'],
  ...readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => join('docs', name)),
]

it('every relative link in the documentation leads to an existing file and heading', () => {
  expect(pages.flatMap(findBrokenLinks)).toEqual([])
})

it('docs/README.md links to every page', () => {
  const linkedFiles = new Set(listLinks('docs/README.md').map(({ file }) => file))
  expect(
    pages.filter((page) => page.startsWith('docs/') && page !== 'docs/README.md' && !linkedFiles.has(page)),
  ).toEqual([])
})

it('every source file that the documentation mentions exists, except in the changelog', () => {
  const sources = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' }).map((name) => `/src/${name}`)
  const otherFiles = ['test', 'bench', 'examples', 'packages', 'scripts'].flatMap((dir) =>
    readdirSync(join(ROOT, dir), { recursive: true, encoding: 'utf8' }).map((name) => `/${dir}/${name}`),
  )
  const files = [...sources, ...otherFiles]
  const missingFiles = pages
    .filter((page) => page !== 'CHANGELOG.md')
    .flatMap((page) =>
      [...readPage(page).matchAll(/`([\w./-]+\.m?ts)\b[^`]*`/g)]
        .map(([, name]) => name!)
        .filter((name) => !files.some((file) => file.endsWith(`/${name}`)))
        .map((name) => `${page}: ${name}`),
    )
  expect(missingFiles).toEqual([])
})

it(`the README has at most ${README_LINES_MAX} lines`, () => {
  expect(readPage('README.md').split('\n').length).toBeLessThanOrEqual(README_LINES_MAX)
})

it('no documented command writes a kubeconfig or token into the working directory', () => {
  const writtenFiles = pages.flatMap((page) =>
    [...readPage(page).matchAll(/^\$ .*> *([^\s~/$'"][^\s]*(kubeconfig|token)\S*)/gm)].map(
      ([, file]) => `${page}: ${file}`,
    ),
  )
  expect(writtenFiles).toEqual([])
})

function findBrokenLinks(page: string): string[] {
  return listLinks(page)
    .filter(({ file, anchor }) => !existsSync(join(ROOT, file)) || (anchor && !listAnchors(file).has(anchor)))
    .map(({ text }) => `${page}: ${text}`)
}

function listLinks(
  page: string,
): { readonly text: string; readonly file: string; readonly anchor: string | undefined }[] {
  const links = [...readPage(page).matchAll(/\]\(([^)\s]+)\)/g)].map(([, text]) => text!)
  return links
    .filter((text) => !/^[a-z]+:/.test(text))
    .map((text) => {
      const [path, anchor] = text.split('#') as [string, string?]
      const file = path === '' ? page : relative(ROOT, join(ROOT, dirname(page), path))
      return { text, file, anchor }
    })
}

/** Returns the anchors of the headings as GitHub generates them: lower case, without punctuation, spaces as hyphens. */
function listAnchors(file: string): Set<string> {
  if (statSync(join(ROOT, file)).isDirectory()) return new Set()
  const headings = [...readPage(file).matchAll(/^#+ (.*)$/gm)].map(([, heading]) => heading!)
  return new Set(
    headings.map((heading) =>
      heading
        .toLowerCase()
        .replace(/[^\p{L}\p{N}\s_-]/gu, '')
        .replaceAll(' ', '-'),
    ),
  )
}

function readPage(page: string): string {
  return readFileSync(join(ROOT, page), 'utf8')
}
