#!/usr/bin/env bash
# The jar for Java applications in dist/, and what its tests and the lab run in build/java. With javac alone:
# Maven (clients/java/pom.xml) makes the same jar, and is needed to publish it.
set -euo pipefail
bin=$1
sources=clients/java
version=$(sed -n 's|^  <version>\(.*\)</version>|\1|p' $sources/pom.xml)
jar=dist/acktrail-client-$version.jar
mark=build/java/.made
mkdir -p build dist
exec 9>build/.jar-lock
flock 9
if [ -e "$jar" ] && [ -e "$mark" ] && [ -z "$(find $sources lab/java scripts/jar.sh -newer "$mark" -type f)" ]; then
  exit 0
fi
if ! command -v javac >/dev/null; then
  echo "A Java compiler is needed: run make servers as root, or install a JDK (Debian: apt-get install default-jdk-headless)." >&2
  exit 2
fi
kafka=$("$bin/python" -c 'from acktrail import artifacts; print(artifacts.resolve("kafka-clients-2.8.2"))')
made=build/java.new
rm -rf $made
mkdir -p $made/client $made/more
compile() {  # class path, directory, sources
  find "${@:3}" -name '*.java' -print0 | xargs -0 javac -Xlint:all,-options -Werror --release 8 -cp "$1" -d "$2"
}
compile "$kafka/*" $made/client $sources/src/main/java
compile "$kafka/*:$made/client" $made/more $sources/src/test/java lab/java
printf 'Implementation-Title: acktrail-client\nImplementation-Version: %s\nAutomatic-Module-Name: io.acktrail.client\n' \
  "$version" >$made/manifest
jar --create --file "$jar.new" --manifest $made/manifest -C $made/client . -C . LICENSE
mv "$jar.new" "$jar"
rm -rf build/java
mv $made build/java
touch "$mark"
